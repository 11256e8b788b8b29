import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../../../support/seeded.ts'
import { Killed } from '../../kill/killed.ts'
import { Lives } from '../../kill/lives.ts'
import { bundled } from '../../postgres/forked.ts'
import type { FileTask } from './child.ts'
import { openWritten } from './written.ts'

/** Kills a process that waits for events, again and again, and starts the next one on its file. */
export async function expectingRun(kills: number, seed: number) {
  const random = seeded(seed)
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-kill-run-'))
  const path = join(folder, 'inbox.db')
  openWritten(path).database.close()
  const program = await bundled(new URL('./expecting-child.ts', import.meta.url), folder)
  const task: FileTask = { name: 'process', folder, seed, path, isGiven: false }
  let child = await Killed.start(program, task)
  const lives = new Lives({ urls: () => child.urls, random })
  try {
    for (let i = 0; i < kills; i++) {
      await sleep(random() * 1_500)
      await child.kill()
      // Some deadlines pass while no process runs.
      await sleep(random() * 300)
      child = await Killed.start(program, task)
    }
    await lives.stop()
    await child.settled()
    await child.end()
    return { begun: lives.size, reported: reportedIn(path), lives }
  } finally {
    await lives.stop()
    await child.end()
    await rm(folder, { recursive: true })
  }
}

function reportedIn(path: string): readonly string[] {
  const { database } = openWritten(path)
  const rows = database.prepare('SELECT media FROM written').all() as { media: string }[]
  database.close()
  return rows.map(({ media }) => media)
}
