import type { Screen } from '../../shared/screen.ts'
import type { InboxTarget } from './target.ts'

/** Creates the tables, or prints the SQL for it without connecting. */
export async function migrateTables(
  { address, name = 'media_webhooks' }: InboxTarget,
  { print, json }: { readonly print: true | undefined; readonly json: true | undefined },
  screen: Screen,
): Promise<number> {
  if (print) {
    // Imports no driver.
    const { migrationSql } = await import('../../../inbox/postgres/schema.ts')
    const sql = migrationSql(name)
    if (json) screen.json({ sql })
    else screen.print(sql.trimEnd())
    return 0
  }
  const { migrate } = await import('../../../inbox/postgres.ts')
  const isChanged = await migrate(address, { schema: name })
  if (json) screen.json({ schema: name, changed: isChanged })
  else screen.print(isChanged ? `created the tables in the schema ${name}` : `the schema ${name} is up to date`)
  return 0
}
