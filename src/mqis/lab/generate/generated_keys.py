"""The signing keys of generated servers: the same for the same name, so that files are the same.

They prove nothing to anybody else, because everybody has them.
"""

from __future__ import annotations

from functools import cache
from random import Random

from cryptography.hazmat.primitives.asymmetric import rsa

from mqis.runtime.node.signer import KEY_BITS, MachineKey
from mqis.wire.mqds.keys import PublicKey, PublicKeys

_EXPONENT = 65_537
_SMALL_PRIMES = [n for n in range(3, 2000, 2) if all(n % d for d in range(3, int(n**0.5) + 1, 2))]
#: Rounds of Miller and Rabin. Random numbers of this size are hardly ever mistaken in one.
_ROUNDS = 2


@cache
def generated_key(name: str) -> MachineKey:
    """The key of the server with this name."""
    random = Random(f"key of {name}")
    half = KEY_BITS // 2
    first, second = _prime(random, half), _prime(random, half)
    private = pow(_EXPONENT, -1, (first - 1) * (second - 1))
    numbers = rsa.RSAPrivateNumbers(
        first,
        second,
        private,
        rsa.rsa_crt_dmp1(private, first),
        rsa.rsa_crt_dmq1(private, second),
        rsa.rsa_crt_iqmp(first, second),
        rsa.RSAPublicNumbers(_EXPONENT, first * second),
    )
    return MachineKey(numbers.private_key())


def published(key: MachineKey) -> bytes:
    """The value of PROPID_QM_SIGN_PKS with this key."""
    return PublicKeys((PublicKey.of(key.public),)).to_bytes()


def _prime(random: Random, bits: int) -> int:
    """A prime with its two highest bits set, so that a product of two has all bits."""
    while True:
        number = random.getrandbits(bits) | 0b11 << bits - 2 | 1
        if (number - 1) % _EXPONENT and _is_prime(number, random):
            return number


def _is_prime(number: int, random: Random) -> bool:
    if not all(number % small for small in _SMALL_PRIMES):
        return False
    odd, twos = number - 1, 0
    while not odd & 1:
        odd, twos = odd >> 1, twos + 1
    return all(_passes(number, random.randrange(2, number - 1), odd, twos) for _ in range(_ROUNDS))


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    """One round of the test by Miller and Rabin."""
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
