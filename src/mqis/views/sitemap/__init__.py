"""The map of an enterprise: one model of its picture, which the console and ``mqis map`` draw."""
