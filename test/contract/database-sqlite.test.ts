import { expect, test } from 'vitest'
import { sqliteDatabases } from './databases.ts'
import { databaseContract } from './suites/database.ts'

databaseContract(sqliteDatabases, { test, expect }, { shared: false })
