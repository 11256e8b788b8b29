import { expect, test } from 'vitest'
import { adapterContract } from '../../src/testing/contract/adapter.ts'
import { mounts } from '../support/mounts.ts'

adapterContract(mounts.fastify5, { test, expect })
