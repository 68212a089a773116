"""Programs on ``mqis.client``, each of which does one job: ``python -m examples.client.inventory``.

They take ``--server HOST`` or ``HOST:PORT``. They log on as ``$MQIS_USER``, a domain and a
name with a backslash between, with the password in the file that ``$MQIS_PASSWORD_FILE`` names;
without a user they are anonymous.
"""
