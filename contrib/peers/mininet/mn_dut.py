"""A Mininet switch that is any OpenFlow switch program: mn --custom mn_dut.py --switch dut ...

The program is $DUT_CMD, a shell command that stays in the foreground.  It gets DUT_PORTS,
DUT_CONTROLLER, DUT_DPID, DUT_OFP, DUT_OFP_VERSION and DUT_DIR and is ended with SIGTERM.
"""
import os
import shutil
import signal
import subprocess
import tempfile
import time

from mininet.node import Switch

END_S = 3


class DutSwitch(Switch):
    dpidLen = 16

    def __init__(self, name, **kw):
        Switch.__init__(self, name, **kw)
        self.process = None
        self.folder = None

    def start(self, controllers):
        self.folder = tempfile.mkdtemp(prefix="mn-dut-")
        ports = [i.name for n, i in sorted(self.intfs.items()) if not i.IP() and n > 0]
        environment = dict(
            os.environ,
            DUT_PORTS=" ".join(ports),
            DUT_DIR=self.folder,
            DUT_DPID=self.dpid.rjust(16, "0"),
            DUT_OFP=os.environ.get("DUT_OFP", "OpenFlow13"),
            DUT_OFP_VERSION=os.environ.get("DUT_OFP_VERSION", "1.3"),
            DUT_CONTROLLER=" ".join(f"tcp:{c.IP()}:{c.port}" for c in controllers))
        with open(self.folder + "/out", "w") as log:
            self.process = subprocess.Popen(
                os.environ["DUT_CMD"], shell=True, env=environment, stdin=subprocess.DEVNULL,
                start_new_session=True, stdout=log, stderr=subprocess.STDOUT)
        time.sleep(float(os.environ.get("DUT_START_DELAY_S", "3")))

    def connected(self):
        return True

    def stop(self, deleteIntfs=True):
        if self.process:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
            shutil.rmtree(self.folder, ignore_errors=True)
        Switch.stop(self, deleteIntfs)


switches = {"dut": DutSwitch}
