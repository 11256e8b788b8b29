import { startProgram } from '../support/program.ts'
import { proveRuntime } from './runtime.suite.ts'

const env = { NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' }

proveRuntime('deno', (deno, cwd) =>
  startProgram(deno, ['run', '--allow-net', 'deno.js'], { cwd, env }, /^listening on (\d+)$/),
)
