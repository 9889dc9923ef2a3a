"""TIEM: hypergraph evidence (EEH), case-based skill memory (CSM) and their fusion (HEFR).

The modules of this package that only compute (windows, themes, budget, skills, recall, stability, scmr) make no call, read no
file and know no clock but the stamps they are given: what they return is a function of their arguments.
"""
