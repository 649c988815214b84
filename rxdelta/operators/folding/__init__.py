"""Events → the reply so far, and the message at the end. `validate` checks the protocol in front of them."""
