import { startWorkerd } from './start-workerd.ts'
import { proveRuntime } from './suite.ts'

proveRuntime('workerd', (workerd, folder) => startWorkerd(workerd, folder, 'worker.js'))
