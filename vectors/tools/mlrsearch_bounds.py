#!/usr/bin/env python3
"""Writes vectors/mlrsearch/bounds.json: what the package MLRsearch 1.2.1 (PyPI) finds.

    python3 -m venv venv && venv/bin/pip install MLRsearch==1.2.1
    venv/bin/python vectors/tools/mlrsearch_bounds.py vectors/mlrsearch/bounds.json

"searches" are whole searches on devices that a formula describes; "classes" are random trials of a
load with the package's two estimates of whether it is a lower bound, and "throughputs" the
conditional throughput where it is one.
"""

import json
import random
import sys

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)
from MLRsearch.target_spec import TargetSpec
from MLRsearch.target_stat import TargetStat


class Device(AbstractMeasurer):
    """Forwards `capacity` frames a second and what its queue holds; every so manieth trial loses
    one frame of a hundred more."""

    def __init__(self, capacity, queue, bad_every):
        self.capacity, self.queue, self.bad_every, self.trials = capacity, queue, bad_every, 0

    def measure(self, intended_duration, intended_load):
        self.trials += 1
        offered = max(1, round(intended_load * intended_duration))
        forwarded = min(offered, int(self.capacity * intended_duration) + self.queue)
        if self.bad_every and self.trials % self.bad_every == 0:
            forwarded -= -(-forwarded // 100)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            forwarding_count=forwarded,
        )


GOAL_KEYS = {
    "loss_ratio": "loss_ratio",
    "exceed_ratio": "exceed_ratio",
    "relative_width": "relative_width",
    "initial_trial_s": "initial_trial_duration",
    "final_trial_s": "final_trial_duration",
    "duration_sum_s": "duration_sum",
}


def goal(**values):
    return SearchGoal(**{GOAL_KEYS[key]: value for key, value in values.items()})


def search(capacity, queue, bad_every, goals):
    device = Device(capacity, queue, bad_every)
    config = Config()
    config.goals = [goal(**values) for values in goals]
    config.min_load, config.max_load = 100.0, 1_000_000.0
    found = MultipleLossRatioSearch(config=config).search(measurer=device, debug=lambda _: None)
    number = lambda load: None if load is None else float(load)
    results = [
        {
            "lower_bound_pps": number(one.relevant_lower_bound),
            "upper_bound_pps": number(one.relevant_upper_bound),
            "conditional_throughput_pps": number(one.conditional_throughput),
        }
        for one in (found[key] for key in config.goals)
    ]
    return {
        "device": {"capacity_pps": capacity, "queue": queue, "bad_every": bad_every},
        "goals": goals,
        "results": results,
        "trials": device.trials,
    }


def classification(rng):
    """Random trials of one load, and what the package says of them."""
    initial, final = 0.25, 1.0
    values = {
        "loss_ratio": rng.choice([0.0, 0.005]),
        "exceed_ratio": rng.choice([0.0, 0.25, 0.5]),
        "relative_width": 0.01,
        "initial_trial_s": initial,
        "final_trial_s": final,
        "duration_sum_s": rng.choice([1.0, 3.0, 8.0]),
    }
    target = TargetSpec(
        loss_ratio=values["loss_ratio"],
        exceed_ratio=values["exceed_ratio"],
        discrete_width=None,
        trial_duration=final,
        duration_sum=values["duration_sum_s"],
        expansion_coefficient=4,
        fail_fast=True,
        preceding=None,
    )
    stat, trials = TargetStat(target=target), []
    for _ in range(rng.randint(0, 10)):
        # Durations are sums of powers of two, so that both add them up exactly.
        duration, lost = rng.choice([initial, final, final]), rng.choice([0, 0, 1, 3, 8, 400])
        result = MeasurementResult(
            intended_duration=duration,
            intended_load=1000.0,
            offered_count=1000,
            loss_count=lost,
        )
        stat.add(result)
        trials.append([duration, lost / 1000])
    at_best, at_worst = stat.estimates()
    found = {"goal": values, "trials": trials, "at_best": at_best, "at_worst": at_worst}
    if at_worst:
        found["loss_ratio"] = stat.pessimistic_loss_ratio
    return found


def main():
    rng = random.Random(1)
    searches = []
    for bad_every in (0, 3):
        for capacity, queue in [(1_234, 0), (20_000, 16), (77_777, 0), (654_321, 64), (9e6, 0)]:
            ndr = {
                "loss_ratio": 0.0,
                "exceed_ratio": 0.5,
                "relative_width": 0.005,
                "initial_trial_s": 1.0,
                "final_trial_s": 1.0,
                "duration_sum_s": 21.0,
            }
            strict = {**ndr, "exceed_ratio": 0.0, "final_trial_s": 5.0, "duration_sum_s": 5.0}
            goals = [ndr, {**ndr, "loss_ratio": 0.005}]
            searches.append(search(capacity, queue, bad_every, goals))
            if not bad_every:
                searches.append(search(capacity, queue, bad_every, [strict]))
    classes = [classification(rng) for _ in range(300)]
    lines = lambda rows: ",\n".join("  " + json.dumps(row, sort_keys=True) for row in rows)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write('{"source": "MLRsearch 1.2.1 (PyPI), vectors/tools/mlrsearch_bounds.py",\n')
        file.write(f'"searches": [\n{lines(searches)}\n],\n"classes": [\n{lines(classes)}\n]}}\n')


main()
