Outcome=None
def write_page(): pass
