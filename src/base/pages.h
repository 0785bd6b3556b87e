// Pages of memory: how large they are, and who waits when they come and go.
//
// The system fills a page with zeros when it is first touched: 2 MiB of them in one go, in which
// many kernels give the processor to no one else. And threads of a process wait for each other at
// the list of what is mapped where: a read into fresh memory holds it while the system makes the
// pages, the end of a mapping while it takes all of them back. A thread that is to disturb no other
// therefore takes small pages, touches them before the system does, and gives them back in pieces.
//
// All of this is advice: contents stay, except after rn_pages_drop, and nothing fails.
#ifndef RUNNEL_BASE_PAGES_H_
#define RUNNEL_BASE_PAGES_H_

#include <stddef.h>

// Blocks of at least this size ask for large pages. With small ones, each row of a large table
// costs a page fault and a miss of the processor's translations.
#define RN_PAGES_MANY ((size_t)4 << 20)
#define RN_PAGE_LARGE ((size_t)2 << 20)

// What pages to use inside the block from now on; only whole large pages of it count.
void rn_pages_be_large(void* start, size_t size);
void rn_pages_be_small(void* start, size_t size);

// Makes the pages of the block, if they are not there. The caller may write to it.
void rn_pages_touch(void* start, size_t size);

// Gives the pages inside the block back, a few at a time. Its contents are lost.
void rn_pages_drop(void* start, size_t size);

#endif  // RUNNEL_BASE_PAGES_H_
