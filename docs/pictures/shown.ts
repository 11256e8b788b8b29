import type { Page } from 'playwright-core'

/** A page to take a picture of. */
export interface Shown {
  readonly url: string
  /** Opens what the picture is to show. */
  prepare?(page: Page): Promise<void>
  close(): Promise<void>
}
