import { describe } from 'vitest'
import { deployQueueWorker } from '../queues/cloudflare/deployment.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { provePlatform } from './platform.suite.ts'

const workerd = findRuntime('workerd')

describe.skipIf(workerd === undefined)('on workerd', () =>
  provePlatform('cloudflare queue', () => deployQueueWorker(workerd as string)),
)
