"""``make stranger``: a server under the load of strangers, and an administrator beside them."""
