import { startProgram } from '../support/program.ts'
import { proveRuntime } from './runtime.suite.ts'

proveRuntime('bun', (bun, cwd) => startProgram(bun, ['run', 'bun.js'], { cwd }, /^listening on (\d+)$/))
