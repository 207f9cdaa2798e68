"""The kinds of data that can be made, each a flow of requests and checks for an item."""
