import { proveRuntime } from './runtime.suite.ts'
import { startWorkerd } from './start-workerd.ts'

proveRuntime('workerd', (workerd, folder) => startWorkerd(workerd, folder, 'worker.js'))
