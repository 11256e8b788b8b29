import { expect, test } from 'vitest'
import { databaseContract } from '../../src/testing/contract/database.ts'
import { sqliteDatabases } from './databases.ts'

databaseContract(sqliteDatabases, { test, expect }, { shared: false })
