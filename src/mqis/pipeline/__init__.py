"""The pipeline: journals, captures and exports of an enterprise as tables, on Apache Spark."""
