"""Ctrl-C that is held back until work asks for it."""

import signal
import threading

import pytest

from tuplet.core.interrupts import held_interrupts


def press():
    signal.raise_signal(signal.SIGINT)


def press_twice():
    with held_interrupts() as interrupted:
        assert not interrupted()
        press()
        assert interrupted()
        press()


def fail_after(n_pressed):
    """Do what a compiled kernel does with an exception of the handler."""
    with held_interrupts():
        try:
            for _ in range(n_pressed):
                press()
        except KeyboardInterrupt as error:
            raise SystemError from error
        raise SystemError


def test_the_first_is_held_and_the_second_raised():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        press_twice()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        press()


def test_each_of_nested_ones_holds_its_own():
    with held_interrupts() as outer:
        with held_interrupts() as inner:
            press()
            assert inner()
        assert not outer()
        press()
        assert outer()


def test_a_system_error_is_an_interrupt_only_after_the_second():
    with pytest.raises(SystemError):
        fail_after(1)
    with pytest.raises(KeyboardInterrupt):
        fail_after(2)


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_interrupts() as interrupted:
            press()
            assert not interrupted()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_are_left_alone():
    answers = []

    def work():
        with held_interrupts() as interrupted:
            answers.append((interrupted(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [(False, signal.getsignal(signal.SIGINT))]
