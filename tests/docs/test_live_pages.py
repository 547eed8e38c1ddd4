"""The pages on the client, privacy and deployment agree with the code."""

import re
import shutil
import subprocess

import pytest
from tests.docs.pages import ROOT, page

from partage.client import Agent, AsyncAgent, Played, Pull
from partage.client.base import Options
from partage.ledger import events, fields


def test_the_privacy_page_names_every_field_of_the_ledger():
    text = page("docs/privacy.md")
    for event in events.AnyEvent.__args__:
        assert f"`{event.__struct_config__.tag}`" in text
        for field in event.__struct_fields__:
            assert re.search(rf"`{field}`", text), (event.__name__, field)


def test_the_client_page_names_every_method_option_and_error():
    text = page("docs/client.md")
    names = {name for name in dir(Agent) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncAgent) if not name.startswith("_")}
    for name in names | set(Options.__annotations__) | set(Pull._fields) | set(Played.__dataclass_fields__):
        assert re.search(rf"`(Agent\.)?{name}\b", text), name
    for error in ("Closed", "HorizonReached", "Refused", "Unreachable"):
        assert f"`{error}`" in text


def test_the_deployment_page_and_the_deployed_files_agree():
    text = page("docs/deployment.md")
    for file in ("deploy/partage.service", "deploy/Containerfile", "deploy/nginx.conf"):
        assert (ROOT / file).exists()
        assert file in text
    unit = page("deploy/partage.service")
    assert "MemoryDenyWriteExecute=yes" not in unit  # compiled code could not run
    proxy = page("deploy/nginx.conf")
    largest = int(re.search(r"client_max_body_size (\d+)k;", proxy)[1]) * 1024
    assert largest > fields.LARGEST_BODY  # so that the controller refuses a large body, not the proxy
    assert "proxy_buffering off;" in proxy


def test_systemd_accepts_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed.")
    unit = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", page("deploy/partage.service"), flags=re.MULTILINE)
    (tmp_path / "partage.service").write_text(unit)
    checked = subprocess.run(
        [program, "verify", tmp_path / "partage.service"], capture_output=True, text=True, check=False
    )
    complaints = [line for line in checked.stderr.splitlines() if "partage.service" in line]
    assert not complaints, checked.stderr
