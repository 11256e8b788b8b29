import type { Runner } from '../../../../src/testing/runner.ts'
import { fixtures, freshBody, type MountAdapter } from './fixture.ts'

/** The answer of the application's own GET in {@link ownRoute}. */
export const ownAnswer = 'of the application'

/**
 * Tests that an application can have a GET of its own on the path of the receiver.
 * @param mount mounts a receiver beside a route that answers GET with {@link ownAnswer}
 */
export function ownRoute(mount: MountAdapter, { test, expect }: Runner): void {
  const check = fixtures(mount, { test })

  check("leaves GET to the application's own route on its path", async ({ url, post, handled }) => {
    expect((await post(freshBody())).status).toBe(200)
    const answer = await fetch(url)
    expect([answer.status, await answer.text()]).toEqual([200, ownAnswer])
    expect(handled.length).toBe(1)
  })
}
