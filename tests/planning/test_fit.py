from copy import deepcopy

import pytest

from harness.model.cluster import NodeOffer
from harness.model.errors import ConfigError
from harness.planning.fit import demand_fit, offers_of
from harness.prepare.changes import prepared
from harness.prepare.settings import Resources, Settings, placement_of
from harness.simulator.profile.file import load_profile
from tests.support.compiled import OLDER, documents

GI = 2.0**30
SPOT = ("pool", "spot", "NoSchedule")
SMALL = NodeOffer("small", {"agentpool": "small"}, (), 4.0, 8 * GI, 0.0)
LARGE = NodeOffer("large", {"agentpool": "large"}, (SPOT,), 16.0, 64 * GI, 1.0)


def requesting(cpu="", memory="", gpus=None, placement=((), (), (), "")):
    """A pipeline whose steps request this."""
    wanted = Resources(cpu_request=cpu, cpu_limit=cpu, memory_request=memory, memory_limit=memory, gpus=gpus)
    spec, _ = documents(OLDER)
    return prepared([spec], Settings(caching=True, resources=wanted, placement=placement_of(*placement)))


TOLERANT = ((), ("pool=spot:NoSchedule",), (), "")


@pytest.mark.parametrize(
    ("documents_", "fits"),
    [
        (requesting("4", "8Gi", gpus=0), True),
        (requesting("4001m", "8Gi", gpus=0), False),
        (requesting("1", "9Gi", gpus=0), False),
        (requesting("1", "1Gi", gpus=1), False),
        (requesting("16", "64Gi", gpus=1, placement=TOLERANT), True),
        (requesting("17", "1Gi", gpus=0, placement=TOLERANT), False),
        (requesting("16", "1Gi", gpus=0, placement=(("agentpool=small",), *TOLERANT[1:])), False),
        (requesting("99", "1Gi", gpus=0, placement=(("agentpool=absent",), *TOLERANT[1:])), True),  # perhaps empty now
        (requesting("5", "1Gi", gpus=0, placement=(("agentpool=small",), *TOLERANT[1:], "where")), False),
    ],
)
def test_a_request_fits_one_node_that_the_step_may_run_on(documents_, fits):
    if fits:
        demand_fit(documents_, [SMALL, LARGE], "the cluster")
    else:
        with pytest.raises(ConfigError, match=r"step prepare: its request of .* is above every node of the cluster"):
            demand_fit(documents_, [SMALL, LARGE], "the cluster")


def test_each_of_several_steps_of_one_name_has_to_fit():
    found = requesting("1", "1Gi", gpus=0)
    spec = found[0]
    inner = spec["components"]["comp-condition-1"]["dag"]["tasks"]
    inner["prepare"] = inner.pop("train")
    for label in ("exec-prepare", "exec-train"):
        changed = deepcopy(found)
        resources = changed[0]["deploymentSpec"]["executors"][label]["container"]["resources"]
        resources["resourceCpuRequest"] = "99"
        with pytest.raises(ConfigError, match="step prepare"):
            demand_fit(changed, [SMALL], "the cluster")


def test_the_error_says_what_is_wanted_and_what_the_nodes_offer():
    with pytest.raises(ConfigError, match=r"of 5 cores and 1\.0 GiB is above .* \(small: 4 cores and 8\.0 GiB\)"):
        demand_fit(requesting("5", "1Gi", gpus=0), [SMALL, SMALL, LARGE], "the cluster")


def test_a_virtual_node_takes_pods_of_any_size():
    virtual = NodeOffer("virtual-node", {}, (), 1.0, GI, 0.0, virtual=True)
    demand_fit(requesting("99", "999Gi", gpus=0), [SMALL, virtual], "the cluster")


def test_a_profiles_spot_pool_offers_what_its_nodes_have_to_those_who_tolerate_it():
    offers = offers_of(load_profile("spot-pool"))
    demand_fit(requesting("7", "20Gi", gpus=0, placement=((), (), (), "aks")), offers, "the profile")
    with pytest.raises(ConfigError, match="default: 3"):
        demand_fit(requesting("7", "1Gi", gpus=0), offers, "the profile")
