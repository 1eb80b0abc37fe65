"""What a student's file may not contain, whatever it computes."""


def check_source_text(folder, own):
    pass


def check_tokens(text, own, source):
    pass


def check_symbols(symbols, source, allowed):
    pass


def check_calls(listing):
    pass
