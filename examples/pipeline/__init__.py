"""The pipeline from Python: python -m examples.pipeline.audit, python -m examples.pipeline.ask."""
