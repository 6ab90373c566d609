"""Label Studio itself: server, client, forms and the geometry of its regions."""
