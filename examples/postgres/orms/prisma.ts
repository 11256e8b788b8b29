import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '@prisma/client'
import { poolOf } from 'media-webhooks/inbox/postgres'
import type { PoolClient } from 'pg'

export async function write(client: PoolClient, id: string, title: string): Promise<void> {
  const prisma = new PrismaClient({ adapter: new PrismaPg(poolOf(client)) })
  await prisma.video.create({ data: { id, title: 'untitled' } })
  await prisma.$transaction((tx) => tx.video.update({ where: { id }, data: { title } }))
}
