import { postgresContract } from './postgres.suite.ts'

postgresContract('a postgresInbox that looks for events instead of listening', { listen: false })
