import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../../../support/seeded.ts'
import { Lives } from '../../kill/lives.ts'
import { App } from '../app.ts'

const shards = 4

/** Kills a workerd whose objects wait for events, again and again, and aborts objects in between. */
export async function expectingRun(binary: string, kills: number, seed: number) {
  const random = seeded(seed)
  const app = await App.make(binary, { shards, isolates: 2, unlucky: 0.05 })
  const lives = new Lives({ urls: () => app.urls, random })
  try {
    await app.start()
    for (let i = 0; i < kills; i++) {
      await sleep(random() * 1_500)
      await app.ask(`/abort?key=${Math.floor(random() * shards)}`)
      await sleep(random() * 500)
      await app.stop('SIGKILL')
      // Some deadlines pass while no workerd runs.
      await sleep(random() * 300)
      await app.start()
    }
    await lives.stop()
    // On a busy machine an object may not answer in time.
    while ((await app.unfinished().catch(() => 1)) > 0) await sleep(20)
    return { begun: lives.size, reported: await app.ask<string[]>('/overdue'), lives }
  } finally {
    await lives.stop()
    await app.remove()
  }
}
