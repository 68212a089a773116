#!/bin/sh
# Starts one controller of compose.yml. The first time it founds the enterprise (MQIS_ROLE=pec), or
# waits for the founder and joins (psc, bsc). Everything is kept in the working directory.
set -eu

if [ ! -e joined ]; then
    if [ "$MQIS_ROLE" = pec ]; then
        mqis init --enterprise "$MQIS_ENTERPRISE" --site "$MQIS_SITE" --name "$MQIS_NAME" --listen "$MQIS_ADDRESS"
    else
        if [ -n "${MQIS_STORE:-}" ]; then
            (umask 077; printf '[store]\nurl = "%s"\n[security]\nmachine_policy = "owner"\n[replication]\njournal = "journal"\n' \
                "$MQIS_STORE" > mqis.toml)
        fi
        until mqis join --pec "$MQIS_PEC" --server "$MQIS_PEC_ADDRESS:2879" --role "$MQIS_ROLE" \
            --site "$MQIS_SITE" --name "$MQIS_NAME" --listen "$MQIS_ADDRESS"; do
            sleep 2
        done
    fi
    mqis account add "${MQIS_USER#*\\}" --domain "${MQIS_USER%%\\*}" --group S-1-5-32-544 < "$MQIS_PASSWORD_FILE"
    touch joined
fi
# For Prometheus, which reads it from the network of the containers.
exec mqis serve --port 2879 --mapper-port "${MQIS_MAPPER_PORT:-135}" --monitor "$MQIS_ADDRESS:9364" --log-format json
