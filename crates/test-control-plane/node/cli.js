#!/usr/bin/env node
// Runs the program, with this process's output, signals and exit code.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { program } = require('./index.js');

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`error: cannot run the program: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
