"""Captured messages by client, server and protocol."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline import schemas
from mqis.pipeline.registry import table
from mqis.pipeline.transforms.expressions import gathered, shaped


@table(
    schemas.CONVERSATIONS,
    requires="packets",
    order=("-messages", "-bytes", "client", "server", "port", "protocol"),
)
def conversations(packets: DataFrame) -> DataFrame:
    """One row for each protocol between a client and a port of a server, the busiest first.

    A protocol that travels in another (``cmp`` in ``rpc``) has rows of its own, and its bytes are
    among those of its carrier too.
    """
    to_server = F.col("to_server")
    ends = packets.filter("carrier is not null").select(
        F.when(to_server, F.col("source")).otherwise(F.col("destination")).alias("client"),
        F.when(to_server, F.col("destination")).otherwise(F.col("source")).alias("server"),
        F.when(to_server, F.col("destination_port")).otherwise(F.col("source_port")).alias("port"),
        *("transport", "carrier", "protocol", "file", "stream", "length", "time", "error"),
    )
    added = ends.groupBy("client", "server", "port", "transport", "carrier", "protocol").agg(
        F.countDistinct("file", "stream").alias("streams"),
        F.count_if(F.col("error").isNull()).alias("messages"),
        F.sum("length").alias("bytes"),
        F.count("error").alias("errors"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )
    return gathered(shaped(added, schemas.CONVERSATIONS.names))
