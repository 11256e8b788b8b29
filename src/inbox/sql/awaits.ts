import type { HandlerName } from '../inbox.ts'

// An event that only other processes can handle awaits their handlers. A process with one of them claims the lane; until
// then, however long, nobody reads it in vain.

/** Names under which a process looks for events: its handlers, or name and type of each. JSON, as text holds no NUL. */
export const ownNames = (handlers: readonly HandlerName[]): string[] =>
  handlers.flatMap(({ name, types }) =>
    types === undefined ? [JSON.stringify(name)] : types.map((type) => JSON.stringify([name, type])),
  )

/**
 * Names that an event of `type` awaits if it owes `handlers`. `own`: the names of its process. It has these handlers but
 * can't handle the event: they skip test deliveries, for example.
 */
export const awaitedNames = (handlers: readonly string[], type: string, own: readonly string[]): string[] =>
  handlers
    .map((name) => [JSON.stringify(name), JSON.stringify([name, type])])
    .filter((names) => !names.some((name) => own.includes(name)))
    .flat()
