"""What the demo needs besides factorwise: data to resolve, and a page to show the result on."""
