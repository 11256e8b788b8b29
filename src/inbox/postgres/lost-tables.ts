import { WebhookError } from '../../errors.ts'

/** A function, since what drops tables that it does not know leaves functions: there were tables in this schema. */
export const markName = 'media_webhooks_made_tables'

export const mark = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.${markName}() RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
`

/** @param schema quoted */
export function lostTables(schema: string, cause?: unknown): WebhookError {
  const reason = 'tools that push a schema drop tables they do not know, such as prisma db push and drizzle-kit push'
  const fix = 'restore them from a backup, and give the inbox a schema that no such tool manages'
  const anew = `to begin with an empty inbox, drop what is left of them and the function ${schema}.${markName}, and restart`
  const message = `tables of the inbox were dropped from the schema ${schema}, with the events in them: ${reason}. To keep events, ${fix}; ${anew}`
  return new WebhookError('unavailable', message, { cause })
}
