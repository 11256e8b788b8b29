import { expect, test } from 'vitest'
import { mounts } from '../support/mounts.ts'
import { adapterContract } from './suites/adapter.ts'

adapterContract(mounts.koa2, { test, expect })
