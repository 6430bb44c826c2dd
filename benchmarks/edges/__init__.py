"""The sweep over every translated operator and dtype on edge operands (`make sweep-edges`)."""
