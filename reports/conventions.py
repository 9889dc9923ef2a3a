"""How to read the figures, in one place for the page and the Markdown report."""

CONVENTIONS = (
    ("Scored rows", "Rows with a positive or negative label to which the model gave an answer. Answers that cannot be used (invalid, truncated, refused) count as the opposite class; failures of the infrastructure (rate_limited, budget, provider, bug) are left out."),
    ("Coverage", "Rows with status ok, divided by the forecasts expected (catalysts × epochs)."),
    ("Acc", "Share of scored rows whose class is right; a probability of 0.5 or more says positive. Interval: Wilson, 95 %."),
    ("MCC", "Matthews correlation: (TP·TN − FP·FN) ÷ √((TP+FP)(TP+FN)(TN+FP)(TN+FN)). 0 by convention when all answers, or all labels, are of one class. Interval: percentile bootstrap."),
    ("Macro F1", "Mean of the F1 of both classes; a class that is neither present nor predicted adds 0. Interval: percentile bootstrap."),
    ("By day", "Catalysts of one day share the market's move. Intervals by day take the decision day as the unit: bias-reduced clustered error (CR2) and Student's t with few-cluster degrees of freedom; a score interval for Acc, linearised for MCC and macro F1. Effective n: rows ÷ design effect, 1 + (Σ n² ÷ n − 1) × ICC."),
    ("Pairs", "The reference method minus the other, on rows scored in both. The interval and p days take the decision day as the unit; p days flips the sign of whole days. McNemar is exact and treats rows as independent; it is left out with several epochs. Holm: over methods and benchmarks of a backbone. Significant: both tests after Holm. MDE: smallest difference found with power 0.8 at alpha 0.05."),
    ("Epochs", "Answers of several epochs to one catalyst are not independent: point values use all rows, intervals resample catalysts (Wilson: mean of each catalyst, n = catalysts)."),
    ("Brier, log loss, ECE", "Over scored rows with a probability. Log loss in nats, probabilities clipped at 2.2e-16. ECE: 10 equal-count bins."),
    ("Unusable answers", "Beside the default (wrong), Acc, MCC and F1 are given with such answers left out, and had they been right."),
    ("Tokens", "Final call: what the paper counts. All calls: with the forecast's part of a shared index or memory. On the frontier: share of bootstrap draws in which no method is at least as accurate with no more tokens."),
    ("Base rate", "Share of positive labels among scored rows: the accuracy of always answering positive. Accuracy means little without it."),
    ("no LLM", "A baseline that made no call. Its figures do not depend on the backbone or the rehearsal endpoint it was run beside."),
    ("Undefined", "Shown as —, null in report.json, empty in CSV; a sentence in the warnings says why."),
)  # fmt: skip
"""(name, sentence) pairs."""
