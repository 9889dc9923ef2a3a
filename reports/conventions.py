"""How to read the figures, in one place for the page and the Markdown report."""

CONVENTIONS = (
    ("Scored rows", "Rows with a positive or negative label to which the model gave an answer. Answers that cannot be used (invalid, truncated, refused) count as the opposite class; failures of the infrastructure (rate_limited, budget, provider, bug) are left out."),
    ("Coverage", "Rows with status ok, divided by the forecasts expected (catalysts × epochs)."),
    ("Acc", "Share of scored rows whose class is right; a probability of 0.5 or more says positive. Interval: Wilson, 95 %."),
    ("MCC", "Matthews correlation: (TP·TN − FP·FN) ÷ √((TP+FP)(TP+FN)(TN+FP)(TN+FN)). 0 by convention when all answers, or all labels, are of one class. Interval: percentile bootstrap."),
    ("Macro F1", "Mean of the F1 of both classes; a class that is neither present nor predicted adds 0. Interval: percentile bootstrap."),
    ("Pairs", "Accuracy of the reference method minus that of the other, on rows scored in both. Catalysts of one day share the market's move, so the interval and p days take the decision day as the unit: percentile bootstrap, sign flips. McNemar is exact and treats rows as independent; it is left out with several epochs. MDE: (1.960 + 0.842) × standard error."),
    ("Epochs", "Answers of several epochs to one catalyst are not independent: point values use all rows, intervals resample catalysts (Wilson: mean of each catalyst, n = catalysts)."),
    ("Brier, log loss, ECE", "Over scored rows with a probability. Log loss in nats, probabilities clipped at 2.2e-16. ECE: 10 equal-count bins."),
    ("Base rate", "Share of positive labels among scored rows: the accuracy of always answering positive. Accuracy means little without it."),
    ("no LLM", "A baseline that made no call. Its figures do not depend on the backbone or the rehearsal endpoint it was run beside."),
    ("Undefined", "Shown as —, null in report.json, empty in CSV; a sentence in the warnings says why."),
)  # fmt: skip
"""(name, sentence) pairs."""
