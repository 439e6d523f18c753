// A Kubernetes control plane for tests: starts and stops the program.
'use strict';

const { spawn } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

// Default time limit of a start.
const START_MAX_MS = 30_000;
// Time until a program that ignores SIGTERM is killed.
const STOP_MAX_MS = 10_000;

// Returns the path of the program, which the package of this platform contains.
function program() {
  const name = `kube-test-control-plane-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/kube-test-control-plane`);
  } catch (error) {
    const advice = 'install with optional dependencies; there is no program for other platforms';
    throw new Error(`cannot find the package ${name}: ${advice}`, { cause: error });
  }
}

// Starts a control plane with a port and a kubeconfig of its own, and waits until it is ready.
async function start({ flags = [], timeout = START_MAX_MS } = {}) {
  const path = program();
  const folder = mkdtempSync(join(tmpdir(), 'kube-test-control-plane-'));
  const kubeconfig = join(folder, 'kubeconfig');
  // Its input ends with this process, however that ends.
  const child = spawn(path, ['--exit-with-stdin', '--kubeconfig-out', kubeconfig, ...flags]);
  const ended = new Promise((resolve) => child.once('close', resolve).once('error', resolve));
  const atExit = () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', atExit);
  const stop = async () => {
    child.kill('SIGTERM');
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
    await ended;
    clearTimeout(limit);
    process.off('exit', atExit);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const url = await ready(child, timeout);
    // A forgotten control plane doesn't keep the process alive.
    for (const handle of [child, ...child.stdio]) handle.unref();
    return { kubeconfig, url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

// Waits until the control plane is ready; returns its address.
function ready(child, timeout) {
  return new Promise((resolve, reject) => {
    let output = '';
    let errors = '';
    const late = () => reject(new Error(`the control plane was not ready after ${timeout} ms`));
    const limit = setTimeout(late, timeout);
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      const line = /^ready (\S+)$/m.exec(output.slice(0, output.lastIndexOf('\n') + 1));
      if (!line) return;
      clearTimeout(limit);
      // The pipes stay open and are read, so the program never waits for a reader.
      for (const pipe of [child.stdout, child.stderr]) pipe.removeAllListeners('data').resume();
      resolve(line[1]);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
    const fail = (error) => {
      clearTimeout(limit);
      reject(error);
    };
    child.once('error', fail).once('close', (code) => {
      fail(new Error(errors.trim() || `the control plane ended with code ${code}`));
    });
  });
}

module.exports = { program, start };
