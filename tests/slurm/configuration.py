"""Configuration files of a Slurm of one node, small waits throughout.

Times are what Slurm 22.05 can do at least: it looks for jobs at their time
limit every 30 s, forgets ended ones every 10 s, and lets a requeued job wait
for as long as its credential lives (slurm.conf, AuthInfo, cred_expire; 5 s).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "trapkit-test"
FREEZER = Path("/sys/fs/cgroup/freezer")
GPUS, CPUS = 2, 64
JOBS_A_PORT = 1000
"""Job ids begin at the controller's port times this: clusters that run at once
share the machine's control groups, which are named by job id."""

REQUEUE_WAIT_S = 5
KILL_WAIT_S = 20
"""Between SIGTERM and SIGKILL: an engine may take some seconds to end."""


@dataclass(frozen=True)
class Ports:
    """Where the daemons listen."""

    controller: int
    node: int
    accounts: int


def tracks_by_cgroup() -> bool:
    """Whether a job's processes can be found by control group (version 1): then
    Slurm ends all of them, else those that it knows as descendants.
    """
    return FREEZER.is_dir() and os.access(FREEZER, os.W_OK)


def write_configuration(folder: Path, host: str, ports: Ports, *, accounting: bool, min_job_age_s: int) -> None:
    """slurm.conf and what it leads to, and two devices that stand for GPUs."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    for number in range(GPUS):
        # Slurm wants a character device: this one is /dev/null's.
        os.mknod(folder / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu Type=fake File={folder}/gpu[0-{GPUS - 1}]\n")
    (folder / "cgroup.conf").write_text(
        "CgroupPlugin=cgroup/v1\n"
        "CgroupAutomount=no\n"
        "ConstrainCores=no\n"
        "ConstrainDevices=no\n"
        "ConstrainRAMSpace=no\n"
        "ConstrainSwapSpace=no\n"
    )
    (folder / "slurm.conf").write_text(_slurm_conf(folder, host, ports, accounting, min_job_age_s))
    if accounting:
        accounts = folder / "slurmdbd.conf"
        accounts.touch(mode=0o600)
        accounts.write_text(_slurmdbd_conf(folder, ports))


def _slurm_conf(folder: Path, host: str, ports: Ports, accounting: bool, min_job_age_s: int) -> str:
    tracking = "proctrack/cgroup" if tracks_by_cgroup() else "proctrack/linuxproc"
    accounts = "accounting_storage/slurmdbd" if accounting else "accounting_storage/none"
    return f"""ClusterName={CLUSTER}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports.controller}
SlurmdPort={ports.node}
SlurmUser=root
FirstJobId={ports.controller * JOBS_A_PORT}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={REQUEUE_WAIT_S}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
ProctrackType={tracking}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PropagateResourceLimits=NONE
AccountingStorageType={accounts}
{_account_lines(folder, ports) if accounting else ""}
JobCompType=jobcomp/none
MinJobAge={min_job_age_s}
KillWait={KILL_WAIT_S}
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={CPUS} Gres=gpu:fake:{GPUS} State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES PriorityTier=10 PreemptMode=OFF MaxTime=60
PartitionName=short Nodes={host} PriorityTier=10 PreemptMode=OFF MaxTime=1
PartitionName=spare Nodes={host} PriorityTier=1 PreemptMode=REQUEUE MaxTime=60
"""


def _account_lines(folder: Path, ports: Ports) -> str:
    return f"""AccountingStorageHost=localhost
AccountingStoragePass={folder}/munge.socket
AccountingStoragePort={ports.accounts}
AccountingStorageTRES=gres/gpu"""


def _slurmdbd_conf(folder: Path, ports: Ports) -> str:
    return f"""AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={ports.accounts}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""
