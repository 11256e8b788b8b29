import { expect, test } from 'vitest'
import { inOldestHono } from '../support/mounts.ts'
import { adapterContract } from './suites/adapter.ts'

adapterContract(inOldestHono, { test, expect })
