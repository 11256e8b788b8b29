import { startProgram } from '../package/program.ts'
import { proveRuntime } from './suite.ts'

proveRuntime('bun', (bun, cwd) => startProgram(bun, ['run', 'bun.js'], { cwd }, /^listening on (\d+)$/))
