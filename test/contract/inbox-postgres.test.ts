import { postgresContract } from './postgres.suite.ts'

postgresContract('postgresInbox')
