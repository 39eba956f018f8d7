"""Stands in for Ray in a test: tasks run in place, one after the other, with its retries.

It does not show that tasks reach other machines, that cores are exclusive, or that an exception
comes back whole from another process.
"""
import types


class RayError(Exception):
    """Ray itself failed."""


class RayTaskError(RayError):
    """A task raised `cause`."""

    def __init__(self, cause):
        super().__init__(cause)
        self.cause = cause


exceptions = types.SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)


def init(**_options):
    """Nothing is started."""


def shutdown():
    """Nothing is ended."""


def nodes():
    """One machine."""
    return [{"Alive": True, "Resources": {"CPU": 2.0}}]


class Outcome:
    """What became of a task."""

    def __init__(self, value=None, error=None):
        self.value, self.error = value, error


def remote(num_cpus, max_retries, retry_exceptions):
    """A task that is tried until it is through or `max_retries` are over."""
    assert num_cpus == 2 and retry_exceptions

    def decorate(function):
        def call(*arguments):
            for attempt in range(max_retries + 1):
                try:
                    return Outcome(value=function(*arguments))
                except Exception as error:  # Ray takes every one of them.
                    if attempt == max_retries:
                        return Outcome(error=RayTaskError(error))

        return types.SimpleNamespace(remote=call)

    return decorate


def wait(outcomes, num_returns):
    """All are done."""
    return outcomes[:num_returns], outcomes[num_returns:]


def get(outcome):
    """The value, or what Ray raises."""
    if outcome.error:
        raise outcome.error
    return outcome.value
