"""What was seen, and what is certainly not there."""

from __future__ import annotations

from mqis.protocol.activedirectory.estate.sight import EstateSight, SeenKind, name_of

DOMAIN = "DC=corp,DC=example"
GONE = f"CN=gone,OU=Machines,{DOMAIN}"


def sight() -> EstateSight:
    seen = EstateSight()
    seen.see_domain(DOMAIN)
    seen.see(f"CN=there,OU=Machines,{DOMAIN}", SeenKind.OTHER)
    return seen


def test_an_entry_is_gone_if_others_of_its_container_are_seen() -> None:
    seen = sight()
    assert seen.is_gone(name_of(GONE))
    assert not seen.is_gone(name_of(f"CN=there,OU=Machines,{DOMAIN}"))
    assert not seen.is_gone(name_of("CN=gone,OU=Machines,DC=other,DC=example"))


def test_an_entry_that_shows_nothing_is_not_gone_nor_is_what_is_below_it() -> None:
    seen = sight()
    seen.damaged.add(name_of(GONE))
    assert not seen.is_gone(name_of(GONE))
    assert not seen.is_gone(name_of(f"CN=msmq,{GONE}"))
    assert seen.is_hidden(name_of(GONE), exists=False)


def test_of_a_store_everything_is_seen() -> None:
    assert EstateSight(everything=True).is_gone(name_of(GONE))
    assert not EstateSight(everything=True).is_hidden(name_of(GONE), exists=True)
