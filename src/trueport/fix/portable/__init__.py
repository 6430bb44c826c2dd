"""`trueport fix --portable`: branches and loops on values in the words of torch.cond, torch.while_loop, where and scan.

liveness, values    what a block needs and leaves, and what its names were in eager
text, tests         the user's own lines in another place; a test as a tensor
statements          walks one function; branches, loops and scans write one construct each
functions           the new text in place of the functions of a loaded model, for as long as it is tried
trial, portable     torch's own export of it, compared; and the whole way
"""
