import { WebhookError } from '../../errors.ts'
import { sqlState } from './storage-failure.ts'

/** A function, since what drops tables that it does not know leaves functions: there were tables in this schema. */
export const markName = 'media_webhooks_made_tables'

export const mark = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.${markName}() RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
`

/** True if an error says that a table or its schema does not exist. */
export const saysTableLost = (error: unknown): boolean => /^(42P01|3F000)$/.test(`${sqlState(error)}`)

/** @param schema quoted */
export function lostTables(schema: string): WebhookError {
  const reason = 'tools that push a schema drop tables they do not know, such as prisma db push and drizzle-kit push'
  const fix = 'restore them from a backup, and give the inbox a schema that no such tool manages'
  const anew = `to begin with an empty inbox, drop what is left of them and the function ${schema}.${markName}, and restart`
  const message = `tables of the inbox were dropped from the schema ${schema}, with the events in them: ${reason}. To keep events, ${fix}; ${anew}`
  return new WebhookError('unavailable', message)
}
