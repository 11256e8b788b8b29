import { keptOperations, type OperationStorage, operationsIn } from '../operations/operations.ts'
import type { EventQueue } from './queue.ts'

/** Operations as a Redis list. Each entry is the operation, a newline, and the short ids of its events. */
export function operationList(queue: EventQueue): OperationStorage {
  const { client } = queue
  const key = queue.own.of('operations')
  return {
    add: (operation, events) =>
      queue.reach(async () => {
        await client
          .multi()
          .lpush(key, `${operation}\n${events}`)
          .ltrim(key, 0, keptOperations - 1)
          .exec()
      }),
    list: (limit, event) =>
      queue.reach(async () => {
        const entries = await client.lrange(key, 0, -1)
        return operationsIn(
          entries.map((entry) => entry.split('\n') as [string, string]),
          limit,
          event,
        )
      }),
  }
}
