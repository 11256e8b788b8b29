import { describe } from 'vitest'
import { deployQueueWorker } from '../queues/cloudflare/deployment.ts'
import { findRuntime } from '../runtimes/find-runtime.ts'
import { provePlatform } from './prove-platform.ts'

const workerd = findRuntime('workerd')

describe.skipIf(workerd === undefined)('on workerd', () =>
  provePlatform('cloudflare queue', () => deployQueueWorker(workerd as string)),
)
