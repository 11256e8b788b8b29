import type { HandlerName } from '../../inbox.ts'

// An event that only other processes can handle awaits their handlers: `event.awaits` names them, and `due_at` is when
// it gets too old to wait. A process adopts a batch of events that await its handlers: they become due for every
// process with one of these handlers. However long an event waits, no process claims it in vain.

/** Notification payload: events were released, or handlers removed. */
export const awaitedMark = 'awaited'

/** Events adopted at a time. They are due, so claims of other processes read them. */
export const adoptionSize = 1_000

/** Names a process publishes for its handlers: the name, or name and type for each. JSON, as text holds no NUL. */
export const publishedNames = (handlers: readonly HandlerName[]): string[] =>
  handlers.flatMap(({ name, types }) =>
    types === undefined ? [JSON.stringify(name)] : types.map((type) => JSON.stringify([name, type])),
  )

export function toHandler(published: string): HandlerName {
  const parsed: string | readonly [name: string, type: string] = JSON.parse(published)
  return typeof parsed === 'string' ? { name: parsed } : { name: parsed[0], types: [parsed[1]] }
}

/**
 * Names that an event of `type` awaits if it owes `handlers`. `own`: names its process publishes. It has these handlers
 * but can't handle the event: they skip test deliveries, for example.
 */
export const awaitedNames = (handlers: readonly string[], type: string, own: readonly string[]): string[] =>
  handlers
    .map((name) => [JSON.stringify(name), JSON.stringify([name, type])])
    .filter((names) => !names.some((name) => own.includes(name)))
    .flat()

export const ownHandlers = (schema: string, owner: string): string =>
  `(SELECT handlers FROM ${schema}.owner WHERE owner.id = ${owner})`

/** Adopts events that await our handlers or removed ones. `coalesce` bars the `due_at` index: it has all retries. */
export const adoptStatement = (schema: string, owner: string): string => `
  WITH names AS MATERIALIZED (
    SELECT ${ownHandlers(schema, owner)} AS own, ARRAY(SELECT name FROM ${schema}.removed_handler) AS removed
  )
  UPDATE ${schema}.event SET due_at = now(), delayed_at = now(),
    awaits = CASE WHEN awaits && (SELECT removed FROM names) THEN NULL ELSE awaits END
  WHERE id = ANY (ARRAY(
    SELECT id FROM ${schema}.event WHERE awaits && (SELECT own || removed FROM names) AND coalesce(due_at > now(), false)
    LIMIT ${adoptionSize} FOR UPDATE SKIP LOCKED
  )) RETURNING true AS adopted`
